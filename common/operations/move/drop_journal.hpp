// The file of where --divergent drop --journal: the copies that go, written down before the first of them
// does, so that a run that was ended goes on where it was.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/base/clock.hpp"
#include "common/cluster/keys/probe.hpp"

namespace mcds {

namespace moving {
class Ledger;
}

class DropJournal {
 public:
  // Throws as moving::Ledger does.
  DropJournal(const std::string& path, const Placement& placement, const std::string& key_prefix,
              Clock& clock);
  ~DropJournal();

  // Returns whether the journal has this copy, and it was not written since.
  // add() stores the copies on these servers before they are removed.
  bool has(const std::string& key, const KeyCopy& copy) const;
  void add(const std::string& key, const KeyCopies& copies, std::span<const std::size_t> servers);

 private:
  std::unique_ptr<moving::Ledger> ledger_;
};

}  // namespace mcds
