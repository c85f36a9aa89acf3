#include "python.hpp"

namespace quercus {

void bind_growth(nanobind::module_ module) { (void)module; }

}  // namespace quercus
