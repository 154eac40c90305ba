# Included by FirnInstall.cmake: `cmake --build <folder> --target package` makes two Debian packages of what is installed: libfirn0
# with the library, and firn with all the rest, which depends on it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME firn)
set(CPACK_PACKAGE_CONTACT "The Firn developers <firn@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "ahead-of-time compiler for neural networks")
set(CPACK_PACKAGE_DESCRIPTION "Firn compiles frozen ONNX models into objects and C++ headers. The package holds the
compiler, functions for CMake, the headers, the runtime as source, which each program builds with its own toolchain, and
example programs.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME firn)
set(CPACK_DEBIAN_UNSPECIFIED_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_RECOMMENDS "cmake (>= 3.25), g++ | c++-compiler")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libfirn${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "compiler for neural networks as a library
libfirn.so compiles ONNX models in the process that uses them.")
if(TARGET firn_shared)
  get_target_property(folder firn_shared BINARY_DIR)
  set(FIRN_PACKAGED_LIBRARY ${folder}/libfirn.so.${PROJECT_VERSION})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/FirnPackageDepends.cmake.in ${PROJECT_BINARY_DIR}/FirnPackageDepends.cmake @ONLY)
  set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/FirnPackageDepends.cmake)
endif()
include(CPack)
