// The doctor's findings as the user wants to have them: those accepted, those that are new, and the forms of
// output.
#pragma once

#include "common/operations/doctor/checks.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

// What the configuration accepts is a note. `baseline`: a file with the findings of an earlier run, which are
// left out; it is written anew, and may be missing. Prints the rest; 2 with a problem or a warning.
ExitStatus report_findings(Session& session, const doctor::Examination& seen,
                           const doctor::WantedCheck& wanted, const std::optional<std::string>& baseline);

}  // namespace mcds
