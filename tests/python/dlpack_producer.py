"""A library of arrays that is not NumPy: tensors that others can have by DLPack alone, of any type and on any device."""
import ctypes
import math

INT, UINT, FLOAT, BFLOAT = 0, 1, 2, 4
CPU, CUDA = 1, 2


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _Type),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_alive = {}  # what consumers hold, by the address of the managed tensor


@_Deleter
def _forget(managed):
    _alive.pop(ctypes.addressof(managed.contents), None)


def held():
    """How many exported tensors are not given back."""
    return len(_alive)


class Tensor:
    """`strides` are in elements; none: C-contiguous."""

    def __init__(self, shape, code=FLOAT, bits=32, strides=None, device=CPU):
        self.shape, self.code, self.bits, self.strides, self.device = tuple(shape), code, bits, strides, device
        count = math.prod(shape) if strides is None else 1 + sum((n - 1) * s for n, s in zip(shape, strides))
        self.memory = (ctypes.c_uint8 * max(1, count * bits // 8))()

    @property
    def address(self):
        return ctypes.addressof(self.memory)

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        numbers = ctypes.c_int64 * len(self.shape)
        shape, strides = numbers(*self.shape), numbers(*self.strides) if self.strides else None
        tensor = _Tensor(self.address, _Device(self.device, 0), len(self.shape), _Type(self.code, self.bits, 1), shape, strides, 0)
        managed = _Managed(tensor, None, _forget)
        _alive[ctypes.addressof(managed)] = (managed, shape, strides, self.memory)
        return _new_capsule(ctypes.addressof(managed), b"dltensor", None)
