# Included by the root: the functions for models, and installation as a CMake package. The package carries the runtime as
# source, because each program builds it with its own toolchain.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
include(${CMAKE_CURRENT_LIST_DIR}/FirnModel.cmake)

if(TARGET firn)
  add_executable(Firn::firn ALIAS firn)
  add_library(firn_jit INTERFACE)
  target_include_directories(firn_jit INTERFACE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(firn_jit INTERFACE firn_shared)
  add_library(Firn::jit ALIAS firn_jit)
endif()

option(FIRN_INSTALL "Install Firn together with this project" ${PROJECT_IS_TOP_LEVEL})
if(NOT FIRN_INSTALL)
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Firn)
set(runtime_dir ${CMAKE_INSTALL_DATADIR}/firn/runtime)
if(TARGET firn)
  # LLVM may lie outside the loader's default folders. Packages for other systems have libraries beside this one.
  set_target_properties(firn_shared PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON INSTALL_RPATH "$ORIGIN")
  file(RELATIVE_PATH library_from_tool "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(firn PROPERTIES INSTALL_RPATH "$ORIGIN/${library_from_tool}")
  install(TARGETS firn RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS firn_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    NAMELINK_COMPONENT Unspecified)
endif()
if(TARGET firn AND NOT CMAKE_CROSSCOMPILING)
  set(documents ${PROJECT_BINARY_DIR}/tools/firn/documents)
  install(FILES ${documents}/firn.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${documents}/firn DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  # Debian's zsh looks elsewhere for what packages bring.
  install(CODE "set(FIRN_ZSH_FOLDER site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
  set(FIRN_ZSH_FOLDER vendor-completions)
endif()")
  install(FILES ${documents}/_firn DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/\${FIRN_ZSH_FOLDER}")
  install(FILES ${documents}/firn.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(DIRECTORY include/firn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY runtime/ DESTINATION ${runtime_dir} FILES_MATCHING PATTERN "*.cpp" PATTERN "*.h")
install(DIRECTORY cmake/golden DESTINATION ${package_dir})

# The guide's pages beside each other as in the source tree, so that their links hold, and the programs they speak of.
set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/firn)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${doc_dir})
install(FILES LICENSE DESTINATION ${doc_dir} RENAME copyright)
install(DIRECTORY models DESTINATION ${doc_dir})
foreach(folder IN ITEMS cmake include/firn runtime tools)
  install(FILES ${folder}/README.md DESTINATION ${doc_dir}/${folder} OPTIONAL)
endforeach()
install(FILES tools/internals.md DESTINATION ${doc_dir}/tools OPTIONAL)
foreach(folder IN ITEMS jit python)
  install(FILES tools/${folder}/README.md DESTINATION ${doc_dir}/tools/${folder} OPTIONAL)
endforeach()

configure_package_config_file(cmake/FirnConfig.cmake.in ${PROJECT_BINARY_DIR}/FirnConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR runtime_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/FirnConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  cmake/FirnModel.cmake
  cmake/FirnRuntime.cmake
  cmake/FirnTarget.cmake
  cmake/FirnTrain.cmake
  ${PROJECT_BINARY_DIR}/FirnConfig.cmake
  ${PROJECT_BINARY_DIR}/FirnConfigVersion.cmake
  DESTINATION ${package_dir})

include(${CMAKE_CURRENT_LIST_DIR}/FirnPackage.cmake)
