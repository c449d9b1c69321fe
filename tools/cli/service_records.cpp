#include "tools/cli/service_records.hpp"

#include <arpa/nameser.h>
#include <resolv.h>

#include <array>

namespace mcds {

std::vector<ServiceRecord> parse_service_records(std::span<const unsigned char> answer) {
  ns_msg message;
  std::vector<ServiceRecord> records;
  if (ns_initparse(answer.data(), static_cast<int>(answer.size()), &message) != 0) return records;
  for (int i = 0; i < ns_msg_count(message, ns_s_an); ++i) {
    ns_rr record;
    if (ns_parserr(&message, ns_s_an, i, &record) != 0 || ns_rr_type(record) != ns_t_srv ||
        ns_rr_rdlen(record) < 7)
      continue;
    const unsigned char* data = ns_rr_rdata(record);
    std::array<char, NS_MAXDNAME> name{};
    if (dn_expand(ns_msg_base(message), ns_msg_end(message), data + 6, name.data(), name.size()) < 0)
      continue;
    records.push_back({name.data(), ns_get16(data), ns_get16(data + 2), ns_get16(data + 4)});
  }
  return records;
}

}  // namespace mcds
