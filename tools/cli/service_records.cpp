#include "tools/cli/service_records.hpp"

#include <arpa/nameser.h>
#include <resolv.h>

#include <algorithm>
#include <array>

#include "common/base/within.hpp"

namespace mcds {

std::optional<std::vector<unsigned char>> look_up_service(const std::string& name, Duration longest) {
  // The resolver's settings are those of a thread: this one's are used.
  if ((_res.options & RES_INIT) == 0) static_cast<void>(res_init());
  return within(longest, [name, settings = _res]() mutable {
    std::vector<unsigned char> bytes(65535);
    const int size =
        res_nquery(&settings, name.c_str(), ns_c_in, ns_t_srv, bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(std::min(static_cast<std::size_t>(std::max(size, 0)), bytes.size()));
    return bytes;
  });
}

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
