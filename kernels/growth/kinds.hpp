// Types and constants that the kernels of growing trees share.
#pragma once

#include "../arrays.hpp"

namespace quercus {

using Ids = Vector<int32_t>;  // numbers of rows, nodes, contours, blocks
using ConstIds = Vector<const int32_t>;
using ConstInts = Vector<const int64_t>;
using ConstDeltas = Vector<const int8_t>;
using ConstFlags = Vector<const bool>;
template <class Code>
using Codes = Matrix<const Code>;  // (n, K) branch codes, row by row: int8_t if they fit, else int16_t

constexpr int NONE = -1;      // in place of an index
constexpr int NO_SPLIT = -1;  // in place of a split's number

/// Branches of a split of numbers: below a threshold, at or above it, missing.
constexpr int BELOW = 0, ABOVE = 1, NO_NUMBER = 2;

/// Numbers (of bits) within this distance count as equal: twice the maximum error of an end of an entropy.
constexpr double TIE = 1e-9;

/// Make room for `more` values after the `used` ones; it at least doubles.
template <class T>
inline void make_room(std::vector<T>& values, Index used, Index more) {
    if (used + more > length(values)) values.resize(static_cast<std::size_t>(2 * (used + more)));
}

}  // namespace quercus
