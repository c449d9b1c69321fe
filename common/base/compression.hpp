// Streams of bytes in Zstandard's format (RFC 8878), with a checksum: what goes into a file compressed, and
// comes out of it again.
// Memory is bounded, whatever a file says of itself (8 MiB for what its window may be).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace mcds {

class Compressor {
 public:
  using Sink = std::function<void(std::string_view bytes)>;
  explicit Compressor(Sink sink);
  void write(std::string_view bytes) { pass_on(bytes, false); }
  // What is still held, and the end. Without it a Decompressor says that it was cut off.
  void finish() { pass_on({}, true); }

 private:
  void pass_on(std::string_view bytes, bool last);
  Sink sink_;
  std::unique_ptr<void, void (*)(void*)> state_;
  std::string out_;
};

class Decompressor {
 public:
  // Up to `size` bytes into `into`; 0: there are no more.
  using Fill = std::function<std::size_t(char* into, std::size_t size)>;
  explicit Decompressor(Fill fill);
  // As Fill; 0 too where the data are damaged or cut off, which problem() then says.
  std::size_t read(char* into, std::size_t size);
  const std::string& problem() const { return problem_; }

 private:
  Fill fill_;
  std::unique_ptr<void, void (*)(void*)> state_;
  std::string in_;
  std::size_t position_ = 0;
  bool between_ = true;  // no frame is open
  std::string problem_;
};

}  // namespace mcds
