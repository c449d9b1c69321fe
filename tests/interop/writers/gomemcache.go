package main

import (
	"bufio"
	"log"
	"os"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
)

func main() {
	var servers []string
	for _, server := range strings.Fields(os.Args[1]) {
		part := strings.Split(server, "|")
		if part[1] == "0" {
			servers = append(servers, part[0])
		} else {
			servers = append(servers, part[0]+":"+part[1])
		}
	}
	client := memcache.New(servers...)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		pair := strings.Split(lines.Text(), "\t")
		if err := client.Set(&memcache.Item{Key: pair[0], Value: []byte(pair[1])}); err != nil {
			log.Fatal(pair[0], ": ", err)
		}
	}
}
