// oidc-provider with its own pages, where any password is right. Prints its issuer once it listens.
// Usage: node provider.mjs PAGES_URL SECRET
import { Provider } from "oidc-provider";
import http from "node:http";

const [pages, secret] = process.argv.slice(2);
const groups = { ada: ["bench", "bench-admins"], bob: ["bench"], eve: ["visitors"] };
const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "touchstone",
        client_secret: secret,
        redirect_uris: [`${pages}/login/callback`],
        post_logout_redirect_uris: [`${pages}/login`],
      },
    ],
    pkce: { required: () => true },
    claims: { openid: ["sub"], groups: ["groups"] },
    scopes: ["openid", "groups"],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: groups[id] ?? [] }) }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
