// Defines MCDS_UNDER_ASAN in a build with AddressSanitizer, which gcc and clang state in different ways.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define MCDS_UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MCDS_UNDER_ASAN 1
#endif
#endif
