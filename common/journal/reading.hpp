// JournalReading reads a journal for journal.cpp and compaction.cpp: its root, then its segments.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/journal/journal.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

// A client that finds the root full waits this long for the client that filled it on purpose or seals it.
constexpr BackOff journal_patience{std::chrono::milliseconds(4), std::chrono::milliseconds(50)};

// The maximum size of a journal that is read, in stored bytes.
constexpr std::size_t max_journal_size = std::size_t{128} << 20;
constexpr std::size_t segments_per_trip = 64;

std::string segment_key(const std::string& root, const std::string& id);
std::string encode_all(std::span<const JournalLine> lines);

// The reading of one journal.
struct JournalReading {
  JournalReading() = default;
  // Takes the root from the reply to a get or gets. Throws CorruptData.
  JournalReading(std::string of, const Context& context, Reply reply) : key(std::move(of)) {
    take_root(context, std::move(reply));
  }

  std::string key;
  JournalContents contents;
  std::string root_value;
  JournalRoot root;
  std::vector<std::optional<std::string>> segments;  // nullopt: missing
  bool complete = false;
  std::optional<Failure> failure = {};

  void take_root(const Context& context, Reply reply);
  void read_segments(const Context& context);
  // Reads the root again after a segment was missing: if it was compacted away, the root names others now.
  void reread_root(const Context& context);
  JournalContents finish();
  // Passes each line, repeated ids included, to `report` instead of keeping it.
  JournalContents finish(const ReportLine& report);
};

}  // namespace mcds
