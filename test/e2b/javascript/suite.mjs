// The suite: every method of E2B's SDK against a server, with nothing but the SDK's own environment variables.
import { main } from './kit.mjs';
import { surface } from './surface.mjs';
import './sandbox.mjs';
import './life.mjs';
import './commands.mjs';
import './files.mjs';
import './git.mjs';
import './code.mjs';
import './template.mjs';
import './volume.mjs';
import './errors.mjs';
import './limits.mjs';

await main(surface());
