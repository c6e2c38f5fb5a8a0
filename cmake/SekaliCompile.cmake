# What every sekali target is compiled with: warnings, include folders, a compiler cache if present.
find_program(SEKALI_CCACHE ccache)
if(SEKALI_CCACHE)
    # Paths are cached relative to the tree, so that every clone of it shares one cache.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
                                    ${SEKALI_CCACHE})
endif()

add_library(sekali_compile INTERFACE)
target_compile_options(
    sekali_compile INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                             -Woverloaded-virtual -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# False alarms of the compilers that the checks run with.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 sees uninitialised members in the empty std::optional of almost every optimised build.
    target_compile_options(sekali_compile INTERFACE -Wno-maybe-uninitialized)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # std::stable_sort of GCC 12's library calls a function that the library itself deprecates.
    # Fields left out of a designated initialiser are meant to have their default.
    target_compile_options(sekali_compile INTERFACE -Wno-deprecated-declarations
                                                    -Wno-missing-designated-field-initializers)
endif()

# Only the compilers that the checks run with: what a newer one newly warns of stops nobody's build.
set(checked_GNU 13)
set(checked_Clang 20)
if(SEKALI_WERROR AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS "${checked_${CMAKE_CXX_COMPILER_ID}}")
    target_compile_options(sekali_compile INTERFACE -Werror)
endif()

# One room of the tree: a static library whose sources are listed by its own folder.
# Rooms include each other as "engine/ports.hpp"; users include "sekali/client.hpp".
function(sekali_room name)
    add_library(sekali_${name} STATIC ${ARGN})
    target_include_directories(
        sekali_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                              $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
    target_compile_features(sekali_${name} PUBLIC cxx_std_20)
    target_link_libraries(sekali_${name} PRIVATE $<BUILD_INTERFACE:sekali_compile>)
endfunction()
