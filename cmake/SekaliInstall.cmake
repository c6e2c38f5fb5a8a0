# What is installed: the command, the headers of include/sekali, and the package whose components a
# user names: find_package(sekali COMPONENTS core sqlite) gives sekali::core and sekali::sqlite.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(core_rooms base engine rows process observe client)
set(backend_components memory postgres redis sqlite)

add_library(sekali_core INTERFACE)
set(installed_targets sekali_core)
foreach(room ${core_rooms} ${backend_components})
    list(APPEND installed_targets sekali_${room})
    if(room IN_LIST core_rooms)
        target_link_libraries(sekali_core INTERFACE sekali_${room})
    endif()
endforeach()
foreach(target ${installed_targets})
    string(REPLACE "sekali_" "" export_name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${export_name})
    add_library(sekali::${export_name} ALIAS ${target})
endforeach()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/sekali)
install(TARGETS ${installed_targets} EXPORT sekaliTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT sekaliTargets NAMESPACE sekali:: DESTINATION ${package_folder})
install(TARGETS sekali RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sekali DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_package_config_file(
    ${CMAKE_CURRENT_LIST_DIR}/sekaliConfig.cmake.in ${PROJECT_BINARY_DIR}/sekaliConfig.cmake
    INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/sekaliConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sekaliConfig.cmake
              ${PROJECT_BINARY_DIR}/sekaliConfigVersion.cmake
        DESTINATION ${package_folder})
