/** Runs the tests of etchings with tiny limits. */
import '../../lists/etchings.test.ts';
