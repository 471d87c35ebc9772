"""Lets fbgemm_gpu see what the CPU can do.

In torch's wheels both libc10.so and libtorch.so define `cpuinfo_isa`, a struct of one byte for each feature. Initialising
fills one of them; fbgemm_gpu reads the other, finds no AVX2 there and runs its scalar loops.
"""

import ctypes
import pathlib

import torch

LIBRARIES = "libc10.so", "libtorch.so"
WITH_SYMBOL = 1  # RTLD_DL_SYMENT of dlfcn.h


class Symbol(ctypes.Structure):  # Elf64_Sym of elf.h
    _fields_ = [("name", ctypes.c_uint32), ("info", ctypes.c_uint8), ("other", ctypes.c_uint8),
                ("section", ctypes.c_uint16), ("value", ctypes.c_uint64), ("size", ctypes.c_uint64)]


def features_of(library):
    """The bytes of its cpuinfo_isa, after it looked."""
    library.cpuinfo_initialize()
    address = ctypes.addressof(ctypes.c_ubyte.in_dll(library, "cpuinfo_isa"))
    where, symbol = (ctypes.c_void_p * 4)(), ctypes.POINTER(Symbol)()
    if not ctypes.CDLL(None).dladdr1(ctypes.c_void_p(address), where, ctypes.byref(symbol), WITH_SYMBOL):
        raise OSError("cpuinfo_isa has no entry among the library's symbols")
    return (ctypes.c_ubyte * symbol.contents.size).from_address(address)


def share():
    """To be called before fbgemm_gpu is imported, which keeps what it found. Gives the features found."""
    folder = pathlib.Path(torch.__file__).parent / "lib"
    features = [features_of(ctypes.CDLL(str(folder / name))) for name in LIBRARIES]
    fullest = bytes(max(features, key=sum))
    for one in features:
        ctypes.memmove(one, fullest, min(len(one), len(fullest)))
    return sum(fullest)
