// How many files and connections this process may have open.
#pragma once

namespace mcds {

// Raises the soft limit to the hard one. False: there is nothing left to raise.
bool raise_descriptor_limit();
// As it was when the process began: for a command that is run, which may rely on small numbers (select(2)).
// May be called between fork and exec.
void restore_descriptor_limit();
// The soft limit now in force.
unsigned long descriptor_limit();

}  // namespace mcds
