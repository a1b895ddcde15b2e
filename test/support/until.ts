/**
 * Waits until a condition holds, however long that takes: no test fails because a machine is slow. A condition that
 * never holds ends with the time of the test.
 */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 5));
}
