# Sets `aliases_variable` to the C++ expression for the aliases of entry `index` of the list `key`,
# and appends the array that this expression needs to the source text in `tables_variable`.
function(tessera_catalog_aliases aliases_variable tables_variable catalog key index name)
  string(JSON count LENGTH "${catalog}" ${key} ${index} aliases)
  if(count EQUAL 0)
    set(${aliases_variable} "{}" PARENT_SCOPE)
    return()
  endif()
  set(elements "")
  math(EXPR last "${count} - 1")
  foreach(alias_index RANGE ${last})
    string(JSON alias GET "${catalog}" ${key} ${index} aliases ${alias_index})
    string(APPEND elements "\"${alias}\", ")
  endforeach()
  set(table "constexpr std::array<std::string_view, ${count}> k_${name}_aliases = {${elements}};\n")
  set(${tables_variable} "${${tables_variable}}${table}" PARENT_SCOPE)
  set(${aliases_variable} "k_${name}_aliases" PARENT_SCOPE)
endfunction()

# tessera_catalog_names(NAMES): sets NAMES to the names of all backends in backends/catalog.json, best
# first.
function(tessera_catalog_names names_variable)
  file(READ ${PROJECT_SOURCE_DIR}/backends/catalog.json catalog)
  string(JSON count LENGTH "${catalog}" backends)
  math(EXPR last "${count} - 1")
  set(names "")
  foreach(index RANGE ${last})
    string(JSON name GET "${catalog}" backends ${index} name)
    list(APPEND names ${name})
  endforeach()
  set(${names_variable} ${names} PARENT_SCOPE)
endfunction()

# tessera_catalog(OUTPUT): generates a source file with the table of src/backend/catalog/catalog.h
# from backends/catalog.json. Call it after backends/ was configured: plug-ins that are not built
# set their reasons in the global properties TESSERA_BACKEND_REASON_<name> and
# TESSERA_BACKEND_LACKS_LIBRARY_<name>. The global property TESSERA_PLUGIN_TARGETS has the targets
# of plug-ins that are built.
function(tessera_catalog output)
  set(catalog_file ${PROJECT_SOURCE_DIR}/backends/catalog.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${catalog_file})
  file(READ ${catalog_file} catalog)
  set(declarations "")
  set(tables "")
  set(entries "")
  string(JSON count LENGTH "${catalog}" backends)
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    string(JSON name GET "${catalog}" backends ${index} name)
    string(JSON kind GET "${catalog}" backends ${index} kind)
    string(JSON install GET "${catalog}" backends ${index} install)
    # A wheel has no tools/setup, and an extra for each library that PyPI has, in the right version.
    if(NOT TESSERA_WHEEL)
      string(PREPEND install "tools/setup, or ")
    elseif(install MATCHES "^pip ")
      set(install "pip install 'tessera[${name}]'")
    endif()
    string(JSON only_if_named ERROR_VARIABLE no_such_key
      GET "${catalog}" backends ${index} only_if_named)
    if(NOT only_if_named STREQUAL "ON")
      set(only_if_named OFF)
    endif()
    string(REPLACE ON true only_if_named ${only_if_named})
    string(REPLACE OFF false only_if_named ${only_if_named})
    tessera_catalog_aliases(aliases tables "${catalog}" backends ${index} ${name})
    get_property(reason GLOBAL PROPERTY TESSERA_BACKEND_REASON_${name})
    get_property(lacks_library GLOBAL PROPERTY TESSERA_BACKEND_LACKS_LIBRARY_${name})
    set(fault "CatalogEntry::kNone")
    if(reason AND lacks_library)
      set(fault "CatalogEntry::kLibraryMissing")
    elseif(reason)
      set(fault "CatalogEntry::kNotConfigured")
    endif()
    if(kind STREQUAL "linked")
      string(APPEND declarations
        "extern \"C\" int32_t tessera_open_backend_${name}(const tessera_host*, tessera_backend*,\n"
        "    tessera_error*);\n")
      set(file "")
      set(open "tessera_open_backend_${name}")
    else()
      set(file "backend_${name}.so")
      if(TARGET tessera_backend_${name})
        set_property(GLOBAL APPEND PROPERTY TESSERA_PLUGIN_TARGETS tessera_backend_${name})
      endif()
      set(open "nullptr")
    endif()
    string(APPEND entries
      "    CatalogEntry{\"${name}\", ${aliases}, \"${file}\", \"${install}\", \"${reason}\", ${fault}, ${open}, ${only_if_named}},\n")
  endforeach()
  set(absent "")
  string(JSON absent_count LENGTH "${catalog}" absent)
  math(EXPR last "${absent_count} - 1")
  foreach(index RANGE ${last})
    string(JSON name GET "${catalog}" absent ${index} name)
    string(JSON reason GET "${catalog}" absent ${index} reason)
    tessera_catalog_aliases(aliases tables "${catalog}" absent ${index} ${name})
    string(APPEND absent "    AbsentBackend{\"${name}\", ${aliases}, \"${reason}\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT
"// Generated from backends/catalog.json.
#include \"backend/catalog/catalog.h\"

#include <array>

@declarations@
namespace tessera {
namespace {

@tables@
constexpr std::array<CatalogEntry, @count@> kCatalog = {
@entries@};

constexpr std::array<AbsentBackend, @absent_count@> kAbsent = {
@absent@};

}  // namespace

std::span<const AbsentBackend> absent_backends() { return kAbsent; }
std::span<const CatalogEntry> catalog() { return kCatalog; }

}  // namespace tessera
" @ONLY)
endfunction()
