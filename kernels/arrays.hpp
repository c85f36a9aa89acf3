// Views of NumPy's arrays, and arrays that a kernel makes for itself. Indices are signed and are not checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quercus {

using Index = std::ptrdiff_t;
using std::int16_t, std::int32_t, std::int64_t, std::int8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;

/// Values that lie next to each other, (n,); `const T` where they are only read. A `std::vector<T>` converts to it.
template <class T>
using Vector = std::span<T>;

/// Return the length of a vector as a signed number, like the indices of loops.
template <class T>
inline Index length(const T& values) {
    return static_cast<Index>(values.size());
}

/// Rows of values that lie next to each other, (rows, columns); `const T` where they are only read.
template <class T>
struct Matrix {
    T* data = nullptr;
    Index rows = 0, columns = 0;

    T& operator()(Index i, Index j) const { return data[i * columns + j]; }
    /// A row, (columns,).
    Vector<T> operator[](Index i) const { return {data + i * columns, static_cast<std::size_t>(columns)}; }
    operator Matrix<const T>() const { return {data, rows, columns}; }
};

/// A matrix with memory of its own, zeros at first.
template <class T>
class OwnedMatrix {
    std::vector<T> values;

   public:
    Index rows, columns;

    OwnedMatrix(Index rows, Index columns) : values(rows * columns), rows(rows), columns(columns) {}
    T& operator()(Index i, Index j) { return values[i * columns + j]; }
    const T& operator()(Index i, Index j) const { return values[i * columns + j]; }
    Vector<T> operator[](Index i) { return {values.data() + i * columns, static_cast<std::size_t>(columns)}; }
    Vector<const T> operator[](Index i) const {
        return {values.data() + i * columns, static_cast<std::size_t>(columns)};
    }
    operator Matrix<T>() { return {values.data(), rows, columns}; }
    operator Matrix<const T>() const { return {values.data(), rows, columns}; }
};

using Reals = Vector<double>;             // written, or written and read
using ConstReals = Vector<const double>;  // only read
using RealMatrix = Matrix<double>;
using ConstRealMatrix = Matrix<const double>;

/// A part of a vector, from `first` to before `end`.
template <class T>
inline Vector<T> part(Vector<T> values, Index first, Index end) {
    return values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
}

}  // namespace quercus
