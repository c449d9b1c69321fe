// SharedLibrary: a library that is loaded on first use, so that other programs neither need nor pay for it.
#pragma once

#include <cstdint>

#include "common/base/errors.hpp"

namespace mcds {

class SharedLibrary {
 public:
  // Loads the library for good. Throws `missing` if it is not installed, and always in a static build.
  SharedLibrary(const char* file, const Failure& missing);

  // A function, which converts to any function type. find() throws `missing` if this version lacks it.
  struct Address {
    void* at;
    template <typename Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(at);
    }
  };
  Address find(const char* name) const;

 private:
  void* file_;
  Failure missing_;
};

}  // namespace mcds

// Declares a function of the library. The struct's first member must be `SharedLibrary file`.
#define MCDS_LOADED(member, function) decltype(&::function) member = file.find(#function)

// Declares to packagers a library that the loader does not see (systemd.io/ELF_DLOPEN_METADATA).
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
