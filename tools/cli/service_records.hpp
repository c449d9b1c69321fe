// The SRV records in an answer of a name server (RFC 2782).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mcds {

struct ServiceRecord {
  std::string target;
  unsigned priority, weight, port;
};

// Malformed records are skipped.
std::vector<ServiceRecord> parse_service_records(std::span<const unsigned char> answer);

}  // namespace mcds
