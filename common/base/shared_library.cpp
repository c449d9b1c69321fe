#include "common/base/shared_library.hpp"

#include <dlfcn.h>

namespace mcds {

SharedLibrary::SharedLibrary(const char* file, const Failure& missing) : file_(nullptr), missing_(missing) {
#ifndef MCDS_STATIC
  file_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
#else
  static_cast<void>(file);
#endif
  if (file_ == nullptr) throw missing_;
}

SharedLibrary::Address SharedLibrary::find(const char* name) const {
  void* const address = dlsym(file_, name);
  if (address == nullptr) throw missing_;
  return {address};
}

}  // namespace mcds
