#include "common/operations/move/drop_journal.hpp"

#include "common/operations/move/ledger.hpp"
#include "common/operations/move/map.hpp"

namespace mcds {

namespace {

moving::KeyHash id_of(const std::string& key, std::size_t server) {
  return moving::hash_of(key + '\n' + std::to_string(server));
}
std::uint64_t digest_of(const KeyCopy& copy) {
  return moving::digest_of(copy.md5, copy.flags);
}

}  // namespace

DropJournal::DropJournal(const std::string& path, const Placement& placement, const std::string& key_prefix,
                         Clock& clock)
    : ledger_(std::make_unique<moving::Ledger>(
          path, "drop " + moving::identity_of(placement, placement, key_prefix), &clock)) {
  ledger_->load_all();
}
DropJournal::~DropJournal() = default;

bool DropJournal::has(const std::string& key, const KeyCopy& copy) const {
  const moving::Copied* before = ledger_->find(id_of(key, copy.server));
  return before != nullptr && before->cas == copy.cas.value && before->digest == digest_of(copy);
}

void DropJournal::add(const std::string& key, const KeyCopies& copies, std::span<const std::size_t> servers) {
  for (const std::size_t server : servers)
    ledger_->add(id_of(key, server), {digest_of(copies[server]), copies[server].cas.value});
  ledger_->write();
}

}  // namespace mcds
