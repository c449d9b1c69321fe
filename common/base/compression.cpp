#include "common/base/compression.hpp"

#include <zstd.h>

#include <new>
#include <utility>

namespace mcds {

Compressor::Compressor(Sink sink)
    : sink_(std::move(sink)), state_(ZSTD_createCCtx(), ZSTD_freeCCtx), out_(ZSTD_CStreamOutSize(), '\0') {
  if (!state_) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(state_.get(), ZSTD_c_checksumFlag, 1);
}

void Compressor::pass_on(std::string_view bytes, bool last) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (;;) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    const std::size_t left =
        ZSTD_compressStream2(state_.get(), &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0) throw std::bad_alloc();  // its only possible error
    if (out.pos > 0) sink_(std::string_view(out_).substr(0, out.pos));
    if (last ? left == 0 : in.pos == in.size) return;
  }
}

Decompressor::Decompressor(Fill fill) : fill_(std::move(fill)), state_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
  if (!state_) throw std::bad_alloc();
  ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, 23);
}

std::size_t Decompressor::read(char* into, std::size_t size) {
  while (problem_.empty()) {
    const bool more = position_ == in_.size();
    if (more) {
      in_.resize(ZSTD_DStreamInSize());
      in_.resize(fill_(in_.data(), in_.size()));
      position_ = 0;
    }
    if (in_.empty() && between_) return 0;
    ZSTD_inBuffer in{in_.data(), in_.size(), position_};
    ZSTD_outBuffer out{into, size, 0};
    const std::size_t left = ZSTD_decompressStream(state_.get(), &out, &in);
    position_ = in.pos;
    if (ZSTD_isError(left) != 0) {
      problem_ = std::string("the compressed data are damaged (") + ZSTD_getErrorName(left) + ')';
      return 0;
    }
    between_ = left == 0;
    if (out.pos > 0) return out.pos;
    if (in_.empty() && !between_) problem_ = "the compressed data were cut off";
  }
  return 0;
}

}  // namespace mcds
