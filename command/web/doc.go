// Package web is `curl` (as 7.88) and `wget` (as 1.21) on connections that the sandbox's network policy allows.
//
// Both stand on one small HTTP/1.1 client of our own: what a server sends is printed as it came, in its order and
// spelling, which net/http doesn't keep. Connections come from services.Services.Dial alone. Nothing of the host but its
// root certificates is used: no proxies, no configuration, no cookies, no resolver.
package web
