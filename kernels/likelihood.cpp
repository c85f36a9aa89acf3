// What Python sees of the kernels of the likelihood.
#include "likelihood/loglik.hpp"
#include "python.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace quercus {

void bind_likelihood(nb::module_ module) {
    module.attr("TO_BOUNDARY") = TO_BOUNDARY;
    module.def(
        "maximise",
        [](ConstRealMatrix P, ConstReals w) {
            auto [theta, worst] = maximise(P, w);
            return std::pair(std::move(theta), worst);
        },
        "P"_a, "w"_a, "Return the maximum evidential likelihood estimate and its KKT excess.");
}

}  // namespace quercus
