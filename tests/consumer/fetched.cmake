# Includes the sources as another project does that has no installation: -DEMBERTABLE=DIR, or a source archive.
include(FetchContent)
if(IS_DIRECTORY ${EMBERTABLE})
  FetchContent_Declare(embertable SOURCE_DIR ${EMBERTABLE})
else()
  FetchContent_Declare(embertable URL ${EMBERTABLE} DOWNLOAD_EXTRACT_TIMESTAMP ON)
endif()
FetchContent_MakeAvailable(embertable)
