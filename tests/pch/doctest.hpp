// Precompiled: the test framework, and what most tests include besides. A test still includes what it uses.
#include <doctest/doctest.h>

#include "../../common/pch/standard.hpp"
