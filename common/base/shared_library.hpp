// A library that is loaded when it is first needed, so that programs that do without it neither need nor
// pay for it.
#pragma once

#include <cstdint>

#include "common/base/errors.hpp"

namespace mcds {

class SharedLibrary {
 public:
  // Never unloaded. Throws `missing` if it is not installed, and always in a static build.
  SharedLibrary(const char* file, const Failure& missing);

  // Throws `missing` if it is another version, which has no such function.
  template <typename Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(address_of(name));
  }

 private:
  void* address_of(const char* name) const;

  void* file_;
  Failure missing_;
};

}  // namespace mcds

// Tells packagers of a library that the loader does not see (systemd.io/ELF_DLOPEN_METADATA).
#define MCDS_DLOPEN_TEXT(feature, description, file)             \
  "[{\"feature\":\"" feature "\",\"description\":\"" description \
  "\",\"priority\":\"recommended\","                             \
  "\"soname\":[\"" file "\"]}]"
#ifdef MCDS_STATIC
#define MCDS_DLOPEN_NOTE(name, feature, description, file) static_assert(true)
#else
#define MCDS_DLOPEN_NOTE(name, feature, description, file)                              \
  struct name {                                                                         \
    std::uint32_t name_size, size, type;                                                \
    char owner[4];                                                                      \
    char text[(sizeof MCDS_DLOPEN_TEXT(feature, description, file) + 3) / 4 * 4];       \
  };                                                                                    \
  [[gnu::used, gnu::section(".note.dlopen"), gnu::aligned(4)]] const name name##_text { \
    4, sizeof MCDS_DLOPEN_TEXT(feature, description, file), 0x407c0c0a, "FDO",          \
        MCDS_DLOPEN_TEXT(feature, description, file)                                    \
  }
#endif
