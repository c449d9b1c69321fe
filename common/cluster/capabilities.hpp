// What servers can do, found out before anything relies on it.
//
// memcached from 1.4 on expires items; if the greeting shows such a version, that is proof enough. Whether a
// server supports cas (not if started with -C) shows only when an item is fetched: a `gets` goes in the same
// trip as the first add that will be compared later, and if it returns no cas unique, the add is undone.
// Other servers, and those behind a proxy, are asked once with a probe key that must have a cas unique and
// must be gone when it has expired. This happens before anything that relies on it is sent, or, for the first
// request of a connection, right after it, and then that request is undone.
//
// Requests state what they rely on (Request::must_expire, must_compare). What a server cannot do is
// `refused`, and nothing of it is left behind.
#pragma once

#include <memory>

#include "common/cluster/transport.hpp"

namespace mcds {

std::unique_ptr<Cluster> gated(std::unique_ptr<Transport> transport);

}  // namespace mcds
