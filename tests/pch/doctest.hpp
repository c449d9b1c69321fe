// Precompiled: the test framework, and what most tests include besides. A test still includes what it uses.
// CHECK_THROWS and the like may leave a result unused.
#define DOCTEST_CONFIG_VOID_CAST_EXPRESSIONS
#include <doctest/doctest.h>

#include "../../common/pch/standard.hpp"
