// What item save, load and keep have in common: a save or a load that reports what fails, shows its progress, and says at
// the end what became of it.
#pragma once

#include "common/base/new_file.hpp"
#include "common/operations/load.hpp"
#include "common/operations/save.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

struct SaveDone {
  ExitStatus status = ExitStatus::ok;  // 2 for what is missing from the file
  SaveReport report;
  Duration took{};
};
// `file`: whose room is looked at first; nullptr: it goes elsewhere.
SaveDone save_items(Session& session, const ItemOptions& options, const SavedWriter::Sink& sink,
                    const NewFile* file);

struct LoadDone {
  ExitStatus status = ExitStatus::ok;  // 2 for a file that is cut off or damaged
  LoadReport report;
  SavedReader::End file;
  Duration took{};
};
LoadDone load_items(Session& session, Cluster& cluster, const LoadOptions& options, const std::string& file);

void add_passed_over(JsonObject& line, const std::map<std::string, std::uint64_t>& passed_over);
void add_speed(JsonObject& line, Duration took, std::uint64_t items);
// Throws InvalidInput for a file name that asks for what is not supported.
void check_file_name(const std::string& file);

}  // namespace mcds
