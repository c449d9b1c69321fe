// Compressed streams: whole, truncated, changed, and written by another program.
#include "common/base/compression.hpp"

#include <doctest/doctest.h>
#include <zstd.h>

#include <algorithm>

#include "common/base/random.hpp"

namespace mcds::compression_test {

namespace {

std::string text_of(std::size_t size) {
  SeededRandom random{11};
  std::string text;
  while (text.size() < size) text += "mg key" + std::to_string(random.below(1000)) + " v f t\r\n";
  text.resize(size);
  return text;
}

std::string compressed(const std::string& text, std::size_t piece) {
  std::string bytes;
  Compressor compressor([&](std::string_view part) { bytes += part; });
  for (std::size_t i = 0; i < text.size(); i += piece)
    compressor.write(std::string_view(text).substr(i, piece));
  compressor.finish();
  return bytes;
}

struct Read {
  std::string text;
  std::string problem;
};

Read decompressed(const std::string& bytes, std::size_t piece) {
  std::size_t at = 0;
  Decompressor decompressor([&](char* into, std::size_t size) {
    const std::size_t part = std::min({piece, size, bytes.size() - at});
    std::copy_n(bytes.data() + at, part, into);
    at += part;
    return part;
  });
  Read read;
  std::string buffer(piece, '\0');
  while (const std::size_t got = decompressor.read(buffer.data(), buffer.size()))
    read.text.append(buffer, 0, got);
  read.problem = decompressor.problem();
  return read;
}

}  // namespace

TEST_CASE("compression: what goes in comes out, in pieces of any size") {
  for (const std::size_t size : {0U, 1U, 1000U, 300'000U}) {
    const std::string text = text_of(size);
    for (const std::size_t piece : {7U, 4096U, 1U << 20U}) {
      CAPTURE(size);
      CAPTURE(piece);
      const Read read = decompressed(compressed(text, piece), piece);
      CHECK(read.text == text);
      CHECK(read.problem.empty());
    }
  }
}

TEST_CASE("compression: cut anywhere it says so, and what was read is the beginning") {
  const std::string text = text_of(20'000), bytes = compressed(text, 4096);
  for (std::size_t size = 1; size < bytes.size(); size += 3) {
    const Read read = decompressed(bytes.substr(0, size), 512);
    CHECK_FALSE(read.problem.empty());
    CHECK(text.starts_with(read.text));
  }
}

TEST_CASE("compression: changed anywhere it says so, or changes nothing") {
  const std::string text = text_of(20'000), bytes = compressed(text, 4096);
  std::size_t reported = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    const Read read = decompressed(changed, 512);
    if (read.problem.empty()) CHECK(read.text == text);
    reported += read.problem.empty() ? 0 : 1;
  }
  CHECK(reported > bytes.size() * 9 / 10);
}

TEST_CASE("compression: a frame whose window would take more than 8 MiB is refused") {
  const std::string text = text_of(1000);
  for (const int window : {23, 27}) {
    CAPTURE(window);
    ZSTD_CCtx* const context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window);
    // The header contains the window if the stream's size is not known in advance.
    std::string bytes(ZSTD_compressBound(text.size()), '\0');
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
    ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
    ZSTD_compressStream2(context, &out, &in, ZSTD_e_end);
    ZSTD_freeCCtx(context);
    bytes.resize(out.pos);
    const Read read = decompressed(bytes, 512);
    CHECK(read.problem.empty() == (window == 23));
    CHECK(read.text == (window == 23 ? text : ""));
  }
}

}  // namespace mcds::compression_test
