// The text that clients hash for a server, as each client was observed to write it.
#include <doctest/doctest.h>

#include "common/base/errors.hpp"
#include "common/placement/identity.hpp"

namespace mcds::placement_identity_test {

namespace {

const Resolver resolver{[](const std::string& name) {
                          return name == "cache" ? std::optional<std::string>("10.0.0.7") : std::nullopt;
                        },
                        [](const std::string& address) {
                          return address == "10.0.0.7" ? std::optional<std::string>("cache.example")
                                                       : std::nullopt;
                        }};

// Returns the texts for 10.0.0.7, 10.0.0.7:1, cache, [::1]:1, unix:/m.sock and node=10.0.0.7.
std::vector<std::string> written_by(Identity identity) {
  std::vector<std::string> names;
  for (const char* server : {"10.0.0.7", "10.0.0.7:1", "cache", "[::1]:1", "unix:/m.sock", "node=10.0.0.7"}) {
    names.push_back(identity(parse_pool(server).front(), 0, resolver));
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("identity: clients that write the port always") {
  CHECK(written_by(identity::host_port) ==
        Names{"10.0.0.7:11211", "10.0.0.7:1", "cache:11211", "::1:1", "/m.sock", "node"});
  CHECK(written_by(identity::bracketed) ==
        Names{"10.0.0.7:11211", "10.0.0.7:1", "cache:11211", "[::1]:1", "/m.sock", "node"});
  CHECK(written_by(identity::libmemcached_spy) ==
        Names{"/10.0.0.7:11211", "/10.0.0.7:1", "/cache:11211", "/::1:1", "//m.sock:0", "node"});
  CHECK(written_by(identity::pecl_memcache) ==
        Names{"10.0.0.7:11211", "10.0.0.7:1", "cache:11211", "::1:1", "unix:///m.sock:0", "node"});
  CHECK(written_by(identity::evcache) == Names{"10.0.0.7/10.0.0.7:11211", "10.0.0.7/10.0.0.7:1",
                                               "cache/cache:11211", "::1/::1:1", "/m.sock", "node"});
}

TEST_CASE("identity: clients that leave the default port out") {
  CHECK(written_by(identity::elided) == Names{"10.0.0.7", "10.0.0.7:1", "cache", "::1:1", "/m.sock", "node"});
  CHECK(written_by(identity::libmemcached) ==
        Names{"10.0.0.7", "10.0.0.7:1", "cache", "::1:1", "/m.sock:0", "node"});
  CHECK(written_by(identity::twemproxy) ==
        Names{"10.0.0.7", "10.0.0.7:1", "cache", "::1:1", "/m.sock:", "node"});
}

TEST_CASE("identity: clients that hash the entry as it is written") {
  CHECK(written_by(identity::as_written) ==
        Names{"10.0.0.7", "10.0.0.7:1", "cache", "::1:1", "/m.sock", "node"});
  CHECK(identity::as_written(parse_pool("10.0.0.7:11211").front(), 0, resolver) == "10.0.0.7:11211");
  CHECK(identity::bmemcached(parse_pool("10.0.0.7").front(), 0, resolver) == "10.0.0.7_None_None");
}

TEST_CASE("identity: npm memcached leaves the default port out, but never of an IPv6 address") {
  CHECK(written_by(identity::npm) == Names{"10.0.0.7", "10.0.0.7:1", "cache", "::1:1", "/m.sock", "node"});
  CHECK(identity::npm(parse_pool("[::1]:11211").front(), 0, resolver) == "::1:11211");
}

TEST_CASE("identity: clients that hash what names resolve to") {
  CHECK(written_by(identity::spymemcached) == Names{"10.0.0.7:11211", "10.0.0.7:1", "cache/10.0.0.7:11211",
                                                    "[0:0:0:0:0:0:0:1]:1", "/m.sock", "node"});
  CHECK(written_by(identity::address_port) ==
        Names{"10.0.0.7:11211", "10.0.0.7:1", "10.0.0.7:11211", "[::1]:1", "/m.sock", "node"});
  CHECK(written_by(identity::address_elided) ==
        Names{"10.0.0.7", "10.0.0.7:1", "10.0.0.7", "::1:1", "/m.sock", "node"});
  CHECK(written_by(identity::enyimcore) ==
        Names{"10.0.0.7:11211", "10.0.0.7:1", "Unspecified/cache:11211", "[::1]:1", "/m.sock", "node"});
}

TEST_CASE("identity: clients that hash the name a reverse look-up gives") {
  CHECK(written_by(identity::java_name_elided) ==
        Names{"cache.example", "cache.example:1", "cache", "0:0:0:0:0:0:0:1:1", "/m.sock", "node"});
  CHECK(written_by(identity::java_name_port) == Names{"cache.example:11211", "cache.example:1", "cache:11211",
                                                      "0:0:0:0:0:0:0:1:1", "/m.sock", "node"});
  CHECK(written_by(identity::xmemcached) == Names{"cache.example/10.0.0.7:11211", "cache.example/10.0.0.7:1",
                                                  "cache/10.0.0.7:11211", "/[0:0:0:0:0:0:0:1]:1", "/m.sock",
                                                  "node"});
}

TEST_CASE("identity: a name that does not resolve is reported, where a client hashes its address") {
  CHECK_THROWS_AS(make_placement("spymemcached-ketama", parse_pool("nowhere,cache"), {resolver, "", ""}),
                  InvalidInput);
  CHECK_NOTHROW(make_placement("ketama", parse_pool("nowhere,cache"), {resolver, "", ""}));
}

}  // namespace mcds::placement_identity_test
