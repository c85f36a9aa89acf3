// The extension `quercus.kernels.compiled`: one submodule for each group of kernels.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include "python.hpp"

namespace quercus {

static constexpr int TYPES[] = {NPY_BOOL,  NPY_INT8,   NPY_UINT8, NPY_INT16,  NPY_UINT16,
                                NPY_INT32, NPY_UINT32, NPY_INT64, NPY_UINT64, NPY_FLOAT64};

bool read_array(PyObject* object, Kind kind, int dimensions, bool written, void** data, Index* shape) noexcept {
    if (!PyArray_Check(object)) return false;
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    if (PyArray_NDIM(array) != dimensions || !PyArray_IS_C_CONTIGUOUS(array) || !PyArray_ISALIGNED(array) ||
        PyArray_ISBYTESWAPPED(array))
        return false;
    if (!PyArray_EquivTypenums(PyArray_TYPE(array), TYPES[static_cast<int>(kind)])) return false;
    if (written && !PyArray_ISWRITEABLE(array)) return false;
    *data = PyArray_DATA(array);
    for (int d = 0; d < dimensions; ++d) shape[d] = PyArray_DIM(array, d);
    return true;
}

PyObject* new_array(Kind kind, int dimensions, const Index* shape, void** data) noexcept {
    PyObject* array = PyArray_SimpleNew(dimensions, shape, TYPES[static_cast<int>(kind)]);
    if (array) *data = PyArray_DATA(reinterpret_cast<PyArrayObject*>(array));
    return array;
}

}  // namespace quercus

NB_MODULE(compiled, module) {
    if (PyArray_ImportNumPyAPI() < 0) nanobind::raise_python_error();
    module.attr("sources") = QUERCUS_SOURCES;
    quercus::bind_likelihood(module.def_submodule("likelihood", "The evidential likelihood and its intervals."));
    quercus::bind_growth(module.def_submodule("growth", "Counts, cells and splits of growing trees."));
    quercus::bind_forest(module.def_submodule("forest", "The forest of many memories."));
}
