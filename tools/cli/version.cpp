#include "commit.hpp"
#include "common/base/bytes.hpp"
#include "tools/cli/program.hpp"

namespace mcds {

const std::string_view program_version = MCDS_VERSION;

std::string version_text() {
  std::string text;
  append_all(text, {"mcds ", program_version, " ("});
  // A build without git data knows only the version.
  if (const std::string_view commit = MCDS_COMMIT; commit != "-") append_all(text, {"commit ", commit, "; "});
  append_all(text, {MCDS_BUILD, ")\n"});
  return text;
}

}  // namespace mcds
