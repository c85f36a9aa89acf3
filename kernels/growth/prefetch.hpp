// Ask the memory for rows before their turn comes.
//
// Rows below a node lie anywhere in their columns, and of a million rows the columns are larger than the caches. A loop
// over such rows waits for the memory at each one, unless it has asked for the row some turns before.
#pragma once

#include "kinds.hpp"

namespace quercus {

constexpr Index AHEAD = 16;  // rows; their memory is requested this many rows ahead

/// Ask for what lies at an address: a hint, which changes nothing but the time.
inline void fetch(const void* place) {
#if defined(__GNUC__)
    __builtin_prefetch(place);
#else
    (void)place;
#endif
}

/// Ask for `column[row]`.
template <class T>
inline void fetch(Vector<T> column, Index row) {
    fetch(column.data() + row);
}

/// Ask for the first entry of a row.
template <class T>
inline void fetch(Matrix<T> column, Index row) {
    fetch(column.data + row * column.columns);
}

}  // namespace quercus
