# Included by FirnInstall.cmake: `cmake --build <folder> --target package` makes a Debian package of what is installed.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME firn)
set(CPACK_PACKAGE_CONTACT "The Firn developers <firn@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "ahead-of-time compiler for neural networks")
set(CPACK_PACKAGE_DESCRIPTION "Firn compiles frozen ONNX models into objects and C++ headers. The package holds the
compiler, functions for CMake, the headers, the runtime as source, which each program builds with its own toolchain, and
example programs.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# llvm-19-dev has the library a second time, in a package that dpkg-shlibdeps learns nothing from.
if(NOT FIRN_STATIC_LLVM)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libllvm19")
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "cmake (>= 3.25), g++ | c++-compiler")
include(CPack)
