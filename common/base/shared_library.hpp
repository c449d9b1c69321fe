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

  // A function, as whatever type it is taken for. Throws `missing` if it is another version, which has none
  // of that name.
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

// A member of a struct whose first is `SharedLibrary file`: this function of it, declared in its header.
#define MCDS_LOADED(member, function) decltype(&::function) member = file.find(#function)

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
