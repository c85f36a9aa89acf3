#include "python.hpp"

namespace quercus {

void bind_forest(nanobind::module_ module) { (void)module; }

}  // namespace quercus
