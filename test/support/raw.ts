/** Sends bytes to a server unchanged, and reads its answer until the server closes the connection. */
import { connect, type Socket } from 'node:net';

/** Resolves to the complete answer as Latin-1 when the server closes the connection. */
export function sendRaw(port: number, bytes: string | Uint8Array): Promise<string> {
  return untilClosed(openSocket(port, bytes));
}

export function openSocket(port: number, bytes: string | Uint8Array = ''): Socket {
  const socket = connect(port, '127.0.0.1');
  // The server may close the connection while the client still sends.
  socket.on('error', () => {});
  if (bytes.length > 0) socket.write(bytes);
  return socket;
}

export function untilClosed(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1');
    });
    socket.on('close', () => resolve(answer));
  });
}
