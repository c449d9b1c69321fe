#include "common/base/errors.hpp"
#include "common/cluster/transport.hpp"

namespace mcds {

std::unique_ptr<Transport> make_classic_transport(std::shared_ptr<const Placement>, const ConnectOptions&) {
  throw Failure(ErrorCode::system, "this build has no classic transport; use --protocol meta");
}

}  // namespace mcds
