// A name server's answer for SRV records, and the records in it of a name server (RFC 2782).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.hpp"

namespace mcds {

struct ServiceRecord {
  std::string target;
  unsigned priority, weight, port;
};

// What the system's resolver answers for the service; empty: it has no such records; nullopt: no answer in
// time. The resolver itself would wait for many seconds; it goes on by itself.
std::optional<std::vector<unsigned char>> look_up_service(const std::string& name, Duration longest);

// Malformed records are skipped.
std::vector<ServiceRecord> parse_service_records(std::span<const unsigned char> answer);

}  // namespace mcds
