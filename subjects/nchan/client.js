import NchanSubscriber from 'nchan'

const subscriber = new NchanSubscriber('http://127.0.0.1:8000/sub?channel=news')
subscriber.on('message', (data) => console.log(data))
subscriber.start()
