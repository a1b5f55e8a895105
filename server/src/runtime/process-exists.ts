// Whether a process runs on this machine.

/** Another user's counts too. A process that ended and was not reaped yet still exists. */
export const processExists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return Object(error).code === 'EPERM';
  }
};
