/** Runs the tests of the local server with tiny limits. */
import '../../serve/server.test.ts';
