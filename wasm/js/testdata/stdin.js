let d = ''; process.stdin.setEncoding('utf8'); process.stdin.on('data', (c) => d += c); process.stdin.on('end', () => console.log(JSON.stringify(d)));
