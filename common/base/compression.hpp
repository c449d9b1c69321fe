// Compressor and Decompressor: streams in Zstandard's format (RFC 8878) with a checksum. Memory is bounded,
// whatever window size a file declares (at most 8 MiB is accepted).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

// The library's states.
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace mcds {

class Compressor {
 public:
  using Sink = std::function<void(std::string_view bytes)>;
  explicit Compressor(Sink sink);
  void write(std::string_view bytes) { pass_on(bytes, false); }
  // Writes the buffered bytes and the end. Without it a Decompressor reports that the data were cut off.
  void finish() { pass_on({}, true); }

 private:
  void pass_on(std::string_view bytes, bool last);
  Sink sink_;
  std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> state_;
  std::string out_;
};

class Decompressor {
 public:
  // Reads up to `size` bytes into `into`. Returns 0 at the end.
  using Fill = std::function<std::size_t(char* into, std::size_t size)>;
  explicit Decompressor(Fill fill);
  // Same as Fill. Also returns 0 if the data are damaged or cut off; problem() then describes it.
  std::size_t read(char* into, std::size_t size);
  const std::string& problem() const { return problem_; }

 private:
  Fill fill_;
  std::unique_ptr<ZSTD_DCtx_s, std::size_t (*)(ZSTD_DCtx_s*)> state_;
  std::string in_;
  std::size_t position_ = 0;
  bool between_ = true;  // no frame is open
  std::string problem_;
};

}  // namespace mcds
