// A file that a run writes beside its answers: --report, --audit, --errors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/descriptors.hpp"

namespace mcds {

class OutputFile {
 public:
  enum class From { start, end };

  OutputFile() = default;  // there is none
  // None without a path. What is in it goes, or stays in front. Throws Failure(cannot_write), as write does,
  // with `cannot` before the path; a pipe that nobody reads is one. Open it before anything is done.
  OutputFile(const std::optional<std::string>& path, std::string cannot, From from);

  explicit operator bool() const { return descriptor_ >= 0; }
  void write(std::string_view bytes) const {
    if (descriptor_ >= 0 && !write_all(descriptor_, bytes)) fail();
  }

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  std::string cannot_;
  Descriptor descriptor_;
};

}  // namespace mcds
