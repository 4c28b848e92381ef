/*
 * paths_folder.h - a folder of its own for each test that remembers paths.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_PATHS_FOLDER_H
#define LH_TESTS_SUPPORT_PATHS_FOLDER_H

/* In the folder; it does not exist yet. */
extern char paths_file[80];

/* In a list of struct CMUnitTest. */
#define WITH_PATHS_FOLDER(test)                                                                            \
    cmocka_unit_test_setup_teardown(test, paths_folder_make, paths_folder_remove)

int paths_folder_make(void **state);
/* Fails when anything but the file was left there. */
int paths_folder_remove(void **state);

#endif
